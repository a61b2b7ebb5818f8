//! The HTTP shell: listeners, limits, drain, tokens, admission, health, metrics, and the guarded outbound client.
