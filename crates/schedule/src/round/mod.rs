//! The planner of the two file rounds. Three rules of waiting, three named functions, never shared.
