"""The timeline: instants and their states in both layouts, what they record, archived history."""
