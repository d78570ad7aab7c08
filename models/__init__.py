"""Who answers: litellm, and the scripted model that ships with us."""
