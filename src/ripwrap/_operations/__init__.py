"""Operations, one per module. Each module has the request class that its async and its blocking function share."""
