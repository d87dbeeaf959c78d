"""The door for programs that agents live in: an event comes in as JSON, what the agent should know goes out."""
