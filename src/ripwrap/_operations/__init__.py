"""Operations, one in a module, each with the request that its async and its blocking function share."""
