//! What the API needs of the engine, in one name.

pub use engine::EngineHandle;
