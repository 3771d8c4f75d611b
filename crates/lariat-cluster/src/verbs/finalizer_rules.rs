//! The rules of finalizer names.
//!
//! Source: `ValidateFinalizers` in `k8s.io/apimachinery/pkg/api/validation`, and
//! `validateKubeFinalizerName` in `k8s.io/kubernetes/pkg/apis/core/validation`.

use lariat_core::Labels;

use super::admit;
use super::delete_rules::{FOREGROUND, ORPHAN};
use crate::api::status::Cause;
use crate::kinds::Resource;
use crate::store::Object;

const PATH: &str = "metadata.finalizers";

/// Finds what is wrong with the finalizers of an object.
pub(super) fn validate(resource: &Resource, object: &Object) -> Vec<Cause> {
    let all = admit::finalizers(object);
    let mut causes = Vec::new();
    for name in &all {
        let error = Labels::check_key(name).err();
        causes.extend(error.map(|rule| Cause::invalid(PATH, &(*name).into(), rule)));
    }
    if all.contains(&ORPHAN) && all.contains(&FOREGROUND) {
        let why = format!("finalizer {ORPHAN} and {FOREGROUND} cannot be both set");
        causes.push(Cause::invalid(PATH, &all.clone().into(), &why));
    }
    // Definitions are checked as custom resources are; their own finalizer has no slash.
    if !resource.rules.custom && resource.group != "apiextensions.k8s.io" {
        causes.extend(plain(&all));
    }
    causes
}

/// Finds names without a domain, of which built-in kinds take only the well-known ones.
fn plain(all: &[&str]) -> Vec<Cause> {
    let is_plain =
        |name: &str| !name.contains('/') && !matches!(name, "kubernetes" | ORPHAN | FOREGROUND);
    let found = all.iter().enumerate().filter(|(_, name)| is_plain(name));
    let why = "name is neither a standard finalizer name nor is it fully qualified";
    let cause =
        |(at, name): (usize, &&str)| Cause::invalid(&format!("{PATH}[{at}]"), &(*name).into(), why);
    found.map(cause).collect()
}
