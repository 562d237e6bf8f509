"""A persisted index for ranked search; what embeds and what compares vectors comes with the extra `vectors`."""
