"""Operations, one per module. Each module has a request class, which its async and its blocking function share."""
