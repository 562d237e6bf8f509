"""Operations of the public API, such as search and replace, one per module, with a request of checked arguments."""
