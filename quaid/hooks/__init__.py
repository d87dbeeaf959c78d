"""What agents call at the events of a session."""
