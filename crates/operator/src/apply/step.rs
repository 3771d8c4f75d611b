//! Steps: objects of a set that are applied once other objects are ready.

use std::collections::BTreeMap;

use super::adding::adding_objects;
use super::dependent::Dependent;

/// Objects of a set that are applied together, once earlier steps are ready.
///
/// The objects of a step are applied in the order of [`Desired`](crate::Desired). The next steps begin once all of
/// these objects are ready, by the rules of their kind ([`Readiness::of`](crate::Readiness::of)) or [their
/// own](Dependent::ready_when). Objects of a step that has not begun are left as they are, whether they exist or not.
///
/// Objects are deleted in the opposite order: those of later steps first, and those of a step once the later ones no
/// longer exist. Each object has its place in the label `lariat.dev/order`, so this works even if a new release no
/// longer knows the step. When the owner is deleted, the garbage collector deletes its objects in no particular order.
/// To keep the order then, add a finalizer whose cleanup applies an empty set, and is called again until
/// [`is_gone`](crate::Applied::is_gone) is true.
///
/// ```
/// use lariat::operator::Step;
/// use lariat::Desired;
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
    pub(super) objects: Vec<Dependent>,
    /// Whether its objects are wanted.
    pub(super) wanted: bool,
    /// The reason why it does not begin yet.
    pub(super) waits: Option<String>,
}

impl Step {
    /// Creates a step; no other step of the set may have its name.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            after: Vec::new(),
            objects: Vec::new(),
            wanted: true,
            waits: None,
        }
    }

    /// Begins the step once all objects of another step are ready.
    ///
    /// Repeated calls add further steps.
    pub fn after(mut self, step: &str) -> Self {
        self.after.push(step.to_owned());
        self
    }

    /// Wants the objects only if a condition holds; otherwise they are pruned.
    ///
    /// A step that is not wanted counts as complete for the steps after it. If those make no sense without it, give
    /// them the same condition.
    ///
    /// ```
    /// use lariat::operator::Step;
    /// use serde_json::json;
    ///
    /// let backup = true; // spec.backup
    /// let job = json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "backup"}});
    /// let step = Step::new("backup").only_if(backup).with_value(job);
    /// # let _ = step;
    /// ```
    pub fn only_if(mut self, wanted: bool) -> Self {
        self.wanted &= wanted;
        self
    }

    /// Begins the step only if a precondition holds.
    ///
    /// Otherwise its objects are left as they are, and the reason is reported as
    /// [`Waiting::Precondition`](crate::Waiting::Precondition). Make sure that the reconciler is called again when the
    /// precondition may hold: by a relation, or by a delay that it returns.
    pub fn only_when(mut self, holds: bool, reason: &str) -> Self {
        // The first reason is shown. Further preconditions are shown once it holds.
        if !holds && self.waits.is_none() {
            self.waits = Some(reason.to_owned());
        }
        self
    }

    adding_objects!();
}

/// The steps of a set in the order of their declaration, with their dependencies.
#[derive(Debug, Default)]
pub(super) struct Stages(Vec<Stage>);

/// A step whose predecessors are known.
#[derive(Debug)]
pub(super) struct Stage {
    pub(super) name: String,
    /// The numbers of the steps that must be ready before it.
    pub(super) after: Vec<usize>,
    /// The length of the longest chain of steps before it.
    pub(super) depth: usize,
    pub(super) wanted: bool,
    pub(super) waits: Option<String>,
    /// Whether an object of it cannot be applied, so that it is never complete.
    pub(super) is_broken: bool,
}

impl Stages {
    /// Determines the order of steps; the error says why there is none.
    pub(super) fn of(steps: &[Step]) -> Result<Self, String> {
        // Names are resolved once all steps are known, so a step may be declared before the one it depends on.
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
                    return Err(format!(
                        "step {step:?} comes after {name:?}, which is not a step"
                    ));
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

    /// Returns the greatest depth of a step.
    pub(super) fn depth(&self) -> usize {
        self.0
            .iter()
            .map(|stage| stage.depth)
            .max()
            .unwrap_or_default()
    }
}

/// Sets the depth of each step; the error names the steps of a cycle.
fn measure(stages: &mut [Stage]) -> Result<(), String> {
    let mut known: Vec<Option<usize>> = vec![None; stages.len()];
    // Each round determines the steps whose predecessors are all known. It ends when a round adds nothing: the steps
    // that are still unknown are in a cycle, or depend on one.
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
                "step \"a\" comes after \"x\", which is not a step",
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
