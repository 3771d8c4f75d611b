//! YAML as Kubernetes' tools read and write it.
//!
//! kubectl and client-go read YAML 1.1 with a reader of their own: `0644` is 420, `yes` is true, and of a key that
//! appears twice the last value counts. A text that they would read as another value is written in quotes.
//!
//! ```
//! use lariat_core::yaml;
//! use serde_json::json;
//!
//! assert_eq!(yaml::read("mode: 0644\n")?, json!({"mode": 420}));
//! assert_eq!(yaml::write(&json!({"mode": "0644"})), "mode: \"0644\"\n");
//! # Ok::<(), yaml::YamlError>(())
//! ```

mod decode;
mod error;
mod reader;
mod scalar;
mod tree;
mod writer;

pub use decode::{Document, RepeatedKey};
pub use error::YamlError;
pub use reader::{read, read_document};
pub use writer::write;
