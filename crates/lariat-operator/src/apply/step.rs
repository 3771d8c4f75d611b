//! Steps: objects of a set that are applied once others are ready.

use std::collections::BTreeMap;

use kube::api::DynamicObject;
use serde::Serialize;
use serde_json::Value;

use super::dependent::Dependent;

/// Objects of a set that are applied together, once the objects of other steps are ready.
///
/// The objects of a step are applied in the order of [`Desired`](crate::Desired). The next steps begin once all of them
/// are ready: by the rules of their kind ([`Readiness::of`](crate::Readiness::of)), or
/// [their own](Dependent::ready_when). Objects of a step that has not begun are left as they are, whether they exist or
/// not.
///
/// Objects are deleted in the opposite order: those of later steps first, and the others once these are gone. So a step
/// needs neither its objects nor its name to be known any more; each object has its place in the label
/// `lariat.dev/order`. With the owner, the garbage collector deletes in no order. A finalizer keeps it if its cleanup applies
/// an empty set, and asks to be called again until [`is_gone`](crate::Applied::is_gone).
///
/// ```
/// use lariat_operator::{Desired, Step};
/// use serde_json::json;
///
/// let object = |kind: &str, name: &str| json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}});
/// let desired = Desired::new()
///     .step(Step::new("storage").with_value(object("PersistentVolumeClaim", "data")))
///     .step(Step::new("server").after("storage").with_value(object("Pod", "db")))
///     .step(Step::new("clients").after("server").with_value(object("Pod", "web")));
/// assert_eq!(desired.len(), 3);
/// ```
#[derive(Debug, Clone)]
#[must_use = "a step does nothing until it is added to a set"]
pub struct Step {
    pub(super) name: String,
    pub(super) after: Vec<String>,
    pub(super) dependents: Vec<Dependent>,
    /// Whether its objects are wanted.
    pub(super) wanted: bool,
    /// Why it does not begin yet.
    pub(super) waits: Option<String>,
}

impl Step {
    /// Creates a step with a name that no other step of the set has.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            after: Vec::new(),
            dependents: Vec::new(),
            wanted: true,
            waits: None,
        }
    }

    /// Begins the step once all objects of another step are ready.
    pub fn after(mut self, step: &str) -> Self {
        self.after.push(step.to_owned());
        self
    }

    /// Wants the objects only if a condition holds; otherwise they are pruned.
    ///
    /// A step that is not wanted keeps no other step waiting. One that is of no use without it says the same condition.
    pub fn only_if(mut self, wanted: bool) -> Self {
        self.wanted &= wanted;
        self
    }

    /// Begins the step only if a precondition holds; otherwise its objects are left as they are.
    ///
    /// The reason is what is waited for. When the precondition may hold, the reconciler must be called again: by a
    /// relation, or a delay that it returns.
    pub fn only_when(mut self, holds: bool, reason: &str) -> Self {
        if !holds && self.waits.is_none() {
            self.waits = Some(reason.to_owned());
        }
        self
    }

    /// Adds a typed object.
    pub fn with<K>(self, object: &K) -> Self
    where
        K: kube::Resource<DynamicType = ()> + Serialize,
    {
        self.with_dependent(Dependent::new(object))
    }

    /// Adds a dynamic object, whose kind is in its [`types`](DynamicObject::types).
    pub fn with_dynamic(self, object: &DynamicObject) -> Self {
        self.with_dependent(Dependent::dynamic(object))
    }

    /// Adds an object as JSON.
    pub fn with_value(self, object: Value) -> Self {
        self.with_dependent(Dependent::value(object))
    }

    /// Adds an object with options.
    pub fn with_dependent(mut self, dependent: Dependent) -> Self {
        self.dependents.push(dependent);
        self
    }
}

/// The steps of a set, in the order of their declaration.
#[derive(Debug, Default)]
pub(super) struct Stages(Vec<Stage>);

/// A step, whose predecessors are known.
#[derive(Debug)]
pub(super) struct Stage {
    pub(super) name: String,
    /// The numbers of the steps that come before.
    pub(super) after: Vec<usize>,
    /// The length of the longest chain of steps before it.
    pub(super) depth: usize,
    pub(super) wanted: bool,
    pub(super) waits: Option<String>,
    /// Whether some of its objects cannot be applied, so that it is never done.
    pub(super) is_broken: bool,
}

impl Stages {
    /// Finds the order of steps; the error says why there is none.
    pub(super) fn of(steps: &[Step]) -> Result<Self, String> {
        let mut numbers = BTreeMap::new();
        for (number, step) in steps.iter().enumerate() {
            if numbers.insert(&*step.name, number).is_some() {
                return Err(format!("two steps have the name {:?}", step.name));
            }
        }
        let mut stages = Vec::with_capacity(steps.len());
        for step in steps {
            let mut after = Vec::with_capacity(step.after.len());
            for name in &step.after {
                let Some(number) = numbers.get(&**name) else {
                    let step = &step.name;
                    return Err(format!("step {step:?} is after {name:?}, which is no step"));
                };
                after.push(*number);
            }
            stages.push(Stage {
                name: step.name.clone(),
                after,
                depth: 0,
                wanted: step.wanted,
                waits: step.waits.clone(),
                is_broken: false,
            });
        }
        measure(&mut stages)?;
        Ok(Self(stages))
    }

    pub(super) fn all(&self) -> &[Stage] {
        &self.0
    }

    /// Records that an object of a step cannot be applied.
    pub(super) fn give_up(&mut self, step: Option<usize>) {
        if let Some(stage) = step.and_then(|step| self.0.get_mut(step)) {
            stage.is_broken = true;
        }
    }

    /// Returns the greatest depth.
    pub(super) fn depth(&self) -> usize {
        self.0
            .iter()
            .map(|stage| stage.depth)
            .max()
            .unwrap_or_default()
    }
}

/// Sets the depth of each step; the error names the steps of a circle.
fn measure(stages: &mut [Stage]) -> Result<(), String> {
    let mut known: Vec<Option<usize>> = vec![None; stages.len()];
    loop {
        let before = known.clone();
        for (number, stage) in stages.iter().enumerate() {
            let depths = stage
                .after
                .iter()
                .map(|each| known[*each].map(|depth| depth + 1));
            let depths: Option<Vec<usize>> = depths.collect();
            known[number] = depths.map(|depths| depths.into_iter().max().unwrap_or_default());
        }
        if known == before {
            break;
        }
    }
    let circle = stages
        .iter()
        .zip(&known)
        .filter(|(_, depth)| depth.is_none());
    let circle: Vec<String> = circle
        .map(|(stage, _)| format!("{:?}", stage.name))
        .collect();
    if !circle.is_empty() {
        return Err(format!(
            "the steps {} wait for each other",
            circle.join(", ")
        ));
    }
    for (stage, depth) in stages.iter_mut().zip(known) {
        stage.depth = depth.unwrap_or_default();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn depths(steps: &[(&str, &[&str])]) -> Result<Vec<usize>, String> {
        let steps: Vec<Step> = steps
            .iter()
            .map(|(name, after)| {
                after
                    .iter()
                    .fold(Step::new(name), |step, name| step.after(name))
            })
            .collect();
        let stages = Stages::of(&steps)?;
        Ok(stages.all().iter().map(|stage| stage.depth).collect())
    }

    #[test]
    fn the_depth_is_the_longest_chain_whatever_the_order_of_declaration() {
        let expected = Ok(vec![3, 0, 1, 0, 2]);
        let steps: [(&str, &[&str]); 5] = [
            ("web", &["db", "cache"]),
            ("config", &[]),
            ("storage", &["config"]),
            ("cache", &[]),
            ("db", &["storage", "config"]),
        ];
        assert_eq!(depths(&steps), expected);
        assert_eq!(depths(&[]), Ok(Vec::new()));
    }

    #[test]
    fn circles_unknown_and_repeated_names_are_refused() {
        for (steps, text) in [
            (
                vec![("a", &["b"][..]), ("b", &["a"]), ("c", &[])],
                "\"a\", \"b\" wait for each other",
            ),
            (vec![("a", &["a"][..])], "\"a\" wait"),
            (
                vec![("a", &["x"][..])],
                "step \"a\" is after \"x\", which is no step",
            ),
            (
                vec![("a", &[][..]), ("a", &[])],
                "two steps have the name \"a\"",
            ),
        ] {
            let error = depths(&steps).unwrap_err();
            assert!(error.contains(text), "{error}");
        }
    }
}
