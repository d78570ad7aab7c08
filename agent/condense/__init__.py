"""What an agent forgets when its view has grown too large."""
