//! health, probe and verify: gates that can turn red.
