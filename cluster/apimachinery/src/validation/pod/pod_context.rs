//! A Pod, as its containers see it.

use super::options::Options;
use crate::validation::causes::Causes;
use crate::validation::field::Field;

/// The Pod of a container, as far as checks of the container need it.
#[derive(Debug)]
pub(super) struct PodContext<'a> {
    pub(super) spec: Field<'a>,
    /// The volumes that are valid.
    pub(super) volumes: Vec<Field<'a>>,
    /// The names of claims of resources.
    pub(super) claims: Vec<&'a str>,
    pub(super) options: Options,
}

impl<'a> PodContext<'a> {
    pub(super) fn new(spec: &Field<'a>, volumes: Vec<Field<'a>>, options: Options) -> Self {
        let claims = spec.get("resourceClaims").items();
        let names = claims.map(|claim| claim.text_of("name"));
        Self {
            claims: names.filter(|name| !name.is_empty()).collect(),
            spec: spec.clone(),
            volumes,
            options,
        }
    }
}

/// The lists of containers, in the order in which they start.
pub(super) const LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// Returns all containers, from all lists.
pub(super) fn all<'a>(spec: &Field<'a>) -> Vec<Field<'a>> {
    let lists = LISTS.iter().map(|list| spec.get(list));
    lists
        .flat_map(|list| list.items().collect::<Vec<_>>())
        .collect()
}

/// Checks the name of an image in a Pod itself.
// Not in templates, which were let in with such names for years.
pub(super) fn check_image(container: &Field<'_>, causes: &mut Causes) {
    let image = container.get("image");
    if image.text().trim() != image.text() {
        causes.invalid(&image, "must not have leading or trailing whitespace");
    }
}
