//! Small faulty planners that prove the gates have teeth.
