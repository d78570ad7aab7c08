"""What things cost: each figure beside the floor measured in the same run."""
