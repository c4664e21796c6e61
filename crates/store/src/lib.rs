//! Durable state behind one small trait; SQLite, with one conformance suite for every backend.
