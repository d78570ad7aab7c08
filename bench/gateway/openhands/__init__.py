"""The same load on an agent-server of OpenHands, from its package."""
