//! Server-side apply: what must hold for any two objects that are applied.

use http::Method;
use serde_json::{Value, json};

use crate::cluster::{APPLY, Answer, Tested, with_cluster};
use crate::input::two_values;

/// What an applied object is.
struct Kind {
    api_version: &'static str,
    kind: &'static str,
    plural: &'static str,
    /// Whether an object of it is nothing but what was applied.
    is_plain: bool,
}

const KINDS: [Kind; 4] = [
    Kind {
        api_version: "v1",
        kind: "ConfigMap",
        plural: "/api/v1/namespaces/default/configmaps",
        is_plain: true,
    },
    Kind {
        api_version: "demo.dev/v1",
        kind: "Widget",
        plural: "/apis/demo.dev/v1/namespaces/default/widgets",
        is_plain: true,
    },
    // Defaults depend on what is there.
    Kind {
        api_version: "apps/v1",
        kind: "Deployment",
        plural: "/apis/apps/v1/namespaces/default/deployments",
        is_plain: false,
    },
    Kind {
        api_version: "v1",
        kind: "Service",
        plural: "/api/v1/namespaces/default/services",
        is_plain: false,
    },
];

/// Each line is an object; the kind of the first one is that of both.
pub(crate) fn run(data: &[u8]) {
    let Some((first, second)) = two_values(data) else {
        return;
    };
    let kind = KINDS.iter().find(|kind| first["kind"] == kind.kind);
    let (Some(kind), true) = (kind, first.is_object() && second.is_object()) else {
        return;
    };
    let (first, second) = (kind.typed(first), kind.typed(second));
    with_cluster(|tested| {
        let bench = Bench { tested, kind };
        bench.twice_is_once(&first);
        if kind.is_plain {
            bench.managers_commute(&first, &second);
            bench.the_last_counts(&first, &second);
        }
        tested.reset();
    });
}

impl Kind {
    fn typed(&self, mut object: Value) -> Value {
        object["apiVersion"] = self.api_version.into();
        object["kind"] = self.kind.into();
        if !object["metadata"].is_object() {
            object["metadata"] = json!({});
        }
        object["metadata"]["name"] = "x".into();
        object
    }
}

struct Bench<'a> {
    tested: &'a Tested,
    kind: &'a Kind,
}

impl Bench<'_> {
    fn apply(&self, manager: &str, object: &Value, force: bool) -> Answer {
        let path = format!(
            "{}/x?fieldManager={manager}&force={force}",
            self.kind.plural
        );
        let answer = self
            .tested
            .send(Method::PATCH, &path, APPLY, object.to_string().as_bytes());
        let message = answer.body["message"].as_str().unwrap_or_default();
        // A genuine server, too, takes a field without a schema for an error of its own.
        let is_usual = matches!(answer.code, 200 | 201 | 400 | 403 | 409 | 422)
            || message.starts_with("failed to create typed patch object");
        assert!(is_usual, "{}", answer.body);
        answer
    }

    /// Applies objects by managers one after the other to nothing; the last answer, if all went well.
    fn sequence(&self, steps: &[(&str, &Value)]) -> Option<Value> {
        self.tested.reset();
        let mut last = None;
        for (manager, object) in steps {
            let answer = self.apply(manager, object, false);
            last = (answer.code < 300).then_some(answer.body);
            last.as_ref()?;
        }
        last.map(without_chance)
    }

    fn twice_is_once(&self, object: &Value) {
        self.tested.reset();
        let created = self.apply("a", object, false);
        if created.code >= 300 {
            return;
        }
        for force in [false, true] {
            let again = self.apply("a", object, force);
            assert_eq!(again.code, 200, "{}", again.body);
            assert_eq!(again.body, created.body, "twice is once");
        }
        let path = format!("{}/x", self.kind.plural);
        assert_eq!(
            self.tested.get(&path).body,
            created.body,
            "what is stored was answered"
        );
    }

    fn managers_commute(&self, first: &Value, second: &Value) {
        if depends_on_order(first) || depends_on_order(second) {
            return;
        }
        let one = self.sequence(&[("a", first), ("b", second)]);
        let other = self.sequence(&[("b", second), ("a", first)]);
        assert_eq!(one, other, "managers commute");
    }

    /// What a manager applied before is as if it had never been.
    fn the_last_counts(&self, first: &Value, second: &Value) {
        let Some(replaced) = self.sequence(&[("a", first), ("a", second)]) else {
            return;
        };
        let alone = self.sequence(&[("a", second)]);
        assert_eq!(Some(replaced), alone, "what is no longer applied is gone");
    }
}

/// Returns whether an object says something of the state it is applied to, or of those that follow.
fn depends_on_order(object: &Value) -> bool {
    let metadata = &object["metadata"];
    let names_state = ["uid", "resourceVersion"]
        .iter()
        .any(|name| metadata.get(name).is_some());
    names_state || object["immutable"] == true
}

/// Takes out what depends on when and in which order something was written.
fn without_chance(mut object: Value) -> Value {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for name in ["uid", "resourceVersion", "creationTimestamp", "generation"] {
            metadata.remove(name);
        }
    }
    for entry in object["metadata"]["managedFields"]
        .as_array_mut()
        .into_iter()
        .flatten()
    {
        entry["time"] = Value::Null;
    }
    sort(&mut object);
    object
}

/// Sorts lists: items of several managers are in the order in which they came.
fn sort(value: &mut Value) {
    match value {
        Value::Array(items) => {
            items.iter_mut().for_each(sort);
            items.sort_by_key(Value::to_string);
        }
        Value::Object(members) => members.values_mut().for_each(sort),
        _ => {}
    }
}
