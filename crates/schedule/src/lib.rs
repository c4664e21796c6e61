//! Verbs: pure decisions (due, admit, settle) and the planner of both rounds.
