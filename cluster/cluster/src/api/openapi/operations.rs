//! The operations of a resource.
//!
//! Source of the names and texts: `k8s.io/apiserver/pkg/endpoints/installer.go`.

use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::schema::describe;
use serde_json::json;

use super::names::{camel_case, kind_json, schema_name, shared_name};
use super::operation::{ApiOperation, Path, Sends, Subject};
use super::parameters::{DELETE, LIST, WATCH, WRITE};
use crate::api::discovery::Subresource;

/// Returns the paths of a resource.
///
/// There are none with `watch` for custom kinds.
pub(super) fn paths(resource: &Resource, subresources: &[Subresource]) -> Vec<Path> {
    let (root, plural) = (root(resource), &resource.plural);
    let within = if_set(resource.namespaced, "namespaces/{namespace}/");
    let collection = format!("{root}/{within}{plural}");
    let item = format!("{collection}/{{name}}");
    let make = Maker {
        resource,
        everywhere: false,
    };
    let everywhere = Maker {
        everywhere: true,
        ..make
    };
    // A review can only be created, and is not there afterwards.
    if resource.rules.review {
        return vec![Path::new(collection, vec![make.create()])];
    }
    let mut paths = vec![
        Path::new(collection, make.of_collection()),
        Path::new(item.clone(), make.of_item()),
    ];
    if resource.namespaced {
        paths.push(Path::new(
            format!("{root}/{plural}"),
            vec![everywhere.list()],
        ));
    }
    paths.extend(subresources.iter().filter_map(|part| {
        let operations = make.of_part(part)?;
        Some(Path::new(format!("{item}/{}", part.name), operations))
    }));
    if !resource.rules.custom && !resource.rules.read_only {
        let watched = format!("{root}/watch/{within}{plural}");
        paths.push(Path::new(
            format!("{watched}/{{name}}"),
            vec![make.watch(false)],
        ));
        paths.push(Path::new(watched, vec![make.watch(true)]));
        if resource.namespaced {
            let watched = format!("{root}/watch/{plural}");
            paths.push(Path::new(watched, vec![everywhere.watch(true)]));
        }
    }
    paths
}

/// Returns the path of a version, without a slash at its end.
fn root(resource: &Resource) -> String {
    match resource.group.as_str() {
        "" => format!("/api/{}", resource.version),
        group => format!("/apis/{group}/{}", resource.version),
    }
}

/// Makes the operations of a resource.
#[derive(Debug, Clone, Copy)]
struct Maker<'a> {
    resource: &'a Resource,
    /// The path spans all namespaces.
    everywhere: bool,
}

impl Maker<'_> {
    fn of_collection(self) -> Vec<ApiOperation> {
        if self.resource.rules.read_only {
            return vec![self.list()];
        }
        let mut operations = vec![self.list(), self.create()];
        // A real server has no such operation for them.
        if self.resource.plural != "namespaces" || !self.resource.group.is_empty() {
            operations.push(self.delete_collection());
        }
        operations
    }

    fn of_item(self) -> Vec<ApiOperation> {
        let answers = self.schema();
        let read = self.basic("get", None, answers.clone());
        if self.resource.rules.read_only {
            return vec![read];
        }
        let write = ["put", "patch"].map(|method| self.basic(method, None, answers.clone()));
        [read]
            .into_iter()
            .chain(write)
            .chain([self.delete()])
            .collect()
    }

    /// Returns the operations of a subresource, unless it is a stream.
    fn of_part(self, part: &Subresource) -> Option<Vec<ApiOperation>> {
        // These are the kinds of options: exec, attach, portforward and proxy.
        let is_stream = part.kind.is_some_and(|kind| kind.ends_with("Options"));
        if is_stream || part.name == "log" {
            return None;
        }
        let (group, version) = part
            .group_version
            .unwrap_or((&self.resource.group, &self.resource.version));
        let answers = match part.kind {
            Some(kind) => describe::name(&api_version(group, version), kind)?,
            None => self.schema(),
        };
        let kind = part.kind.unwrap_or(&self.resource.kind);
        let methods = [("create", "post"), ("get", "get"), ("update", "put")];
        let methods = methods.into_iter().chain([("patch", "patch")]);
        let of_part = methods.filter(|(verb, _)| part.verbs.contains(verb));
        let about = json!({"group": group, "version": version, "kind": kind});
        Some(
            of_part
                .map(|(_, method)| {
                    let mut operation = self.basic(method, Some(part.name), answers.clone());
                    operation.about = Some((method, about.clone()));
                    operation
                })
                .collect(),
        )
    }

    fn schema(self) -> String {
        schema_name(self.resource, &self.resource.kind)
    }

    fn create(self) -> ApiOperation {
        self.basic("post", None, self.schema())
    }

    /// Makes an operation that reads or writes an object, or a part of it.
    fn basic(self, method: &'static str, part: Option<&str>, answers: String) -> ApiOperation {
        let kind = &self.resource.kind;
        let of = part.map(|part| format!(" {part} of")).unwrap_or_default();
        let (verb, text) = match method {
            "post" => ("create", format!("create{of}{}{kind}", article(kind))),
            "put" => ("replace", format!("replace{of} the specified {kind}")),
            "patch" => (
                "patch",
                format!("partially update{of} the specified {kind}"),
            ),
            _ => ("read", format!("read{of} the specified {kind}")),
        };
        let mut operation = self.operation((method, method), verb, "", text);
        if let Some(part) = part {
            operation.id += &camel_case(part, true);
        }
        (operation.sends, operation.parameters) = match method {
            "post" | "put" => (Sends::Body(answers.clone()), WRITE.to_vec()),
            "patch" => {
                let parameters = [&WRITE[..], &["force"]].concat();
                (Sends::Patch, parameters)
            }
            _ if self.resource.rules.custom => (Sends::Nothing, vec!["resourceVersion"]),
            _ => (Sends::Nothing, Vec::new()),
        };
        ApiOperation {
            answers,
            ..operation
        }
    }

    fn list(self) -> ApiOperation {
        let verbs = if self.resource.rules.read_only {
            "list"
        } else {
            "list or watch"
        };
        let text = format!("{verbs} objects of kind {}", self.resource.kind);
        let operation = self.operation(("get", "list"), "list", "", text);
        ApiOperation {
            answers: schema_name(self.resource, &self.resource.list_kind),
            parameters: [&LIST[..], &WATCH].concat(),
            ..operation
        }
    }

    fn delete(self) -> ApiOperation {
        let (resource, kind) = (self.resource, &self.resource.kind);
        let text = format!("delete{}{kind}", article(kind));
        let operation = self.operation(("delete", "delete"), "delete", "", text);
        ApiOperation {
            answers: if resource.rules.delete_answers_object && !is_wrapped(resource) {
                self.schema()
            } else {
                shared_name("Status")
            },
            sends: Sends::Optional(shared_name("DeleteOptions")),
            parameters: DELETE.to_vec(),
            ..operation
        }
    }

    fn delete_collection(self) -> ApiOperation {
        let text = format!("delete collection of {}", self.resource.kind);
        let about = ("delete", "deletecollection");
        let operation = self.operation(about, "delete", "Collection", text);
        let answers = shared_name("Status");
        if self.resource.rules.custom {
            // Go describes it as it does a list.
            return ApiOperation {
                answers,
                parameters: [&LIST[..], &WATCH].concat(),
                ..operation
            };
        }
        ApiOperation {
            answers,
            sends: Sends::Optional(shared_name("DeleteOptions")),
            parameters: [&LIST[..], &DELETE].concat(),
            ..operation
        }
    }

    /// Makes an operation of a path that says `watch`.
    fn watch(self, of_list: bool) -> ApiOperation {
        let kind = &self.resource.kind;
        let instead = "deprecated: use the 'watch' parameter with a list operation instead";
        let (action, text) = if of_list {
            let text = format!("watch individual changes to a list of {kind}. {instead}.");
            ("watchlist", text)
        } else {
            let one = "filtered to a single item with the 'fieldSelector' parameter";
            let text = format!("watch changes to an object of kind {kind}. {instead}, {one}.");
            ("watch", text)
        };
        let operation = self.operation(("get", action), "watch", "", text);
        ApiOperation {
            answers: shared_name("WatchEvent"),
            parameters: [&LIST[..], &WATCH].concat(),
            ..operation
        }
    }

    /// Begins an operation with its method and action, and with the parts of its id.
    fn operation(
        self,
        (method, action): (&'static str, &'static str),
        verb: &str,
        many: &str,
        description: String,
    ) -> ApiOperation {
        let resource = self.resource;
        let group = match resource.group.as_str() {
            "" => "core",
            group => group.trim_end_matches(".k8s.io"),
        };
        let names = |first| camel_case(group, first);
        let scope = if_set(resource.namespaced && !self.everywhere, "Namespaced");
        let version = &resource.version;
        ApiOperation {
            method,
            subject: if resource.rules.custom {
                Subject::Custom
            } else {
                Subject::BuiltIn
            },
            about: Some((action, kind_json(resource))),
            id: [
                verb,
                &names(true),
                &camel_case(version, true),
                many,
                scope,
                &resource.kind,
                if_set(action == "watchlist", "List"),
                if_set(self.everywhere, "ForAllNamespaces"),
            ]
            .concat(),
            tag: format!("{}_{version}", names(false)),
            description,
            sends: Sends::Nothing,
            answers: String::new(),
            parameters: Vec::new(),
        }
    }
}

/// Returns whether Go's storage of a kind hides that the storage below answers deletions with the object.
fn is_wrapped(resource: &Resource) -> bool {
    matches!(
        (&*resource.group, &*resource.plural),
        ("", "namespaces") | ("apiextensions.k8s.io", "customresourcedefinitions")
    )
}

fn api_version(group: &str, version: &str) -> String {
    match group {
        "" => version.to_owned(),
        group => format!("{group}/{version}"),
    }
}

/// Returns the article of a kind, between spaces; plurals have none.
fn article(kind: &str) -> &'static str {
    // As GetArticleForNoun in endpoints/installer.go.
    if kind.ends_with('s') && !kind.ends_with("ss") {
        " "
    } else if kind.starts_with(['A', 'E', 'I', 'O', 'U']) {
        " an "
    } else {
        " a "
    }
}

fn if_set(is_set: bool, text: &'static str) -> &'static str {
    if is_set { text } else { "" }
}
