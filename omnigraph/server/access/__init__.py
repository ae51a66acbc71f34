"""Access control: tokens, identity providers, permissions and admission.

The actor comes only from the token. No header, parameter or body member of a request can change it.
"""
