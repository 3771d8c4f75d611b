//! Parses a load.

use std::str::FromStr;

use super::options::Load;

/// The error of a text that is not a valid [`Load`].
///
/// ```
/// use lariat::cluster::Load;
///
/// let error = "pods=many".parse::<Load>().unwrap_err();
/// assert_eq!(error.to_string(), r#""many" is no number of pods"#);
/// ```
#[derive(thiserror::Error, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoadError {
    /// A part is not of the form `name=number`.
    #[error("{0:?} is not of the form name=number, such as pods=20000")]
    Form(String),
    /// There is no such kind of object.
    #[error("{0:?} cannot be loaded; there are pods, configmaps, nodes, namespaces and seed")]
    Name(String),
    /// The number cannot be parsed, or is too large.
    #[error("{number:?} is no number of {name}")]
    Number {
        /// The text before the equals sign.
        name: String,
        /// The text behind the equals sign.
        number: String,
    },
}

lariat_core::debug_as_description!(LoadError);

impl FromStr for Load {
    type Err = LoadError;

    /// Parses `name=number`, several of them with commas: `pods=20000,configmaps=500`.
    fn from_str(text: &str) -> Result<Self, LoadError> {
        text.split(',').try_fold(Self::default(), |load, part| {
            let (name, number) = part
                .trim()
                .split_once('=')
                .ok_or_else(|| LoadError::Form(part.trim().to_owned()))?;
            load.with(name, number)
        })
    }
}

impl Load {
    fn with(self, name: &str, number: &str) -> Result<Self, LoadError> {
        let bad = || LoadError::Number {
            name: name.to_owned(),
            number: number.to_owned(),
        };
        let count = number.parse::<u64>().map_err(|_| bad())?;
        // More would not fit into the memory of any machine.
        let objects = match u32::try_from(count) {
            Ok(objects) => Ok(objects as usize),
            Err(_) => Err(bad()),
        };
        Ok(match name {
            "pods" => Self {
                pods: objects?,
                ..self
            },
            "configmaps" => self.config_maps(objects?),
            "nodes" => self.nodes(objects?),
            "namespaces" => self.namespaces(objects?),
            "seed" => self.seed(count),
            _ => return Err(LoadError::Name(name.to_owned())),
        })
    }
}
