//! The HTTP API: the Svix v1 routes and what stands beside them.
