"""What following costs a gateway, and how soon its clients have what happens."""
