"""Where tools do what they do: walls between an agent's commands and the machine."""
