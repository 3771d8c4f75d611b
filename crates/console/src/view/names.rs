//! The names of kinds, asked of discovery.

use std::collections::BTreeMap;
use std::time::Duration;

use http::Request;
use lariat_controller::SharedControllerFactory;
use lariat_core::Gvk;
use serde::Deserialize;
use tokio::time::timeout;

use crate::api::{KindNames, KindRef};
use crate::members::Members;

/// The resources of a group and version.
#[derive(Deserialize)]
struct Resources {
    resources: Vec<Resource>,
}

/// The part of a resource that is read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Resource {
    kind: String,
    name: String,
    #[serde(default)]
    singular_name: String,
    #[serde(default)]
    short_names: Vec<String>,
}

/// How long discovery may take for a group and version.
const LIMIT: Duration = Duration::from_secs(5);

/// Returns the names of the kinds that have a controller, by context and kind.
///
/// One request is sent for each group and version. A kind is left out if discovery does not answer.
pub(crate) async fn names(members: &Members) -> Vec<KindNames> {
    let mut all = Vec::new();
    for member in members.factories() {
        let mut lists: BTreeMap<String, Vec<Resource>> = BTreeMap::new();
        for controller in member.factory.controllers() {
            let gvk = controller.gvk();
            let path = gvk.api_path();
            if !lists.contains_key(&path) {
                let list = resources(&member.factory, &path).await;
                lists.insert(path.clone(), list);
            }
            let found = lists.get(&path).and_then(|list| names_of(list, gvk));
            all.extend(found.map(|names| KindNames {
                kind: KindRef::new(&member.context, gvk),
                names,
            }));
        }
    }
    all.sort_by(|a, b| a.kind.cmp(&b.kind));
    all
}

/// Returns the resources of a group and version; none if discovery does not answer.
async fn resources(factory: &SharedControllerFactory, path: &str) -> Vec<Resource> {
    let Ok(request) = Request::get(path).body(Vec::new()) else {
        return Vec::new();
    };
    let answer = timeout(LIMIT, factory.client().request_text(request)).await;
    let text = answer.ok().and_then(Result::ok).unwrap_or_default();
    let list: Option<Resources> = serde_json::from_str(&text).ok();
    list.map_or_else(Vec::new, |list| list.resources)
}

fn names_of(list: &[Resource], gvk: &Gvk) -> Option<Vec<String>> {
    // Subresources have the kind too, and a slash in their name.
    let is_it = |resource: &&Resource| resource.kind == gvk.kind() && !resource.name.contains('/');
    let found = list.iter().find(is_it)?;
    let names = [&found.name, &found.singular_name].into_iter();
    let names = names.chain(&found.short_names);
    let names = names.filter(|name| !name.is_empty());
    Some(names.map(|name| name.to_lowercase()).collect())
}
