"""What a moment of a branch is, and what is read there: queries, entities, summaries, histories, exports."""
