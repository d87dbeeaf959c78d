"""Files of any project -> facts: text, markdown and PDF."""
