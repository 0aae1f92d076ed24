"""Codes of languages, such as en, pt-BR or pt_BR. Case and the separator make no difference."""


def tag(code: str) -> str:
    """Return a code in the form in which codes are compared: pt_BR is pt-br."""
    return code.lower().replace("_", "-")


def primary(code: str) -> str:
    """Return a code without its region: pt_BR is pt."""
    return tag(code).partition("-")[0]
