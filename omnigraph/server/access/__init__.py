"""Access control: tokens, identity providers, permissions and admission.

The token alone determines the actor. No header, parameter or body member of a request can override the token.
"""
