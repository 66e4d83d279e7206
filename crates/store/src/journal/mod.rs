//! Decides how what was acknowledged outlives the machine.
