//! Claims about configurations.
