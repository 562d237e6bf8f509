"""Operations of the public API, such as search and replace, one per module.

Most modules have a request class with the checked arguments. The async and the blocking function share it.
"""
