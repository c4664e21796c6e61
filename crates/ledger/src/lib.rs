//! Reading facts for the planner: endpoints, attempts, channels and queue files, streamed.
