//! Programs that apply one object with options, one release after the other, and its state.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, PropagationPolicy};
use kube::{Client, ResourceExt};
use lariat_cache::{KindOptions, Selection};
use lariat_cluster::testing::TestCluster;
use lariat_controller::{ControllerOptions, Outcome, SharedControllerFactory};
use lariat_lease::Lease;
use lariat_operator::{
    Action, Applied, ApplyError, Dependent, Desired, Guard, Immutable, Operator, PlannedAction,
    Reconcile, SetPlan, Waiting,
};
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::watch;
use tokio::time;

use crate::bench::{Bench, SECOND, Widget};

/// The options of the object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) keep: bool,
    pub(crate) create_only: bool,
    pub(crate) adopts: bool,
    pub(crate) renamed: bool,
    pub(crate) replace: bool,
}

impl Options {
    /// Reads the heading of a column, such as `k+c`.
    pub(crate) fn read(text: &str) -> Self {
        let mut options = Self::default();
        for word in text.split('+') {
            match word {
                "none" => {}
                "keep" | "k" => options.keep = true,
                "create" | "c" => options.create_only = true,
                "adopts" | "a" => options.adopts = true,
                "renamed" | "r" => options.renamed = true,
                "replace" | "repl" => options.replace = true,
                _ => panic!("{text} is no option"),
            }
        }
        options
    }

    pub(crate) fn keeping(self, keep: bool) -> Self {
        Self { keep, ..self }
    }

    /// Returns a former name, if the options say that there is one.
    pub(crate) fn former(self, name: &'static str) -> Option<&'static str> {
        self.renamed.then_some(name)
    }

    /// Returns a set with the object.
    pub(crate) fn wanted(self, content: &str) -> Desired {
        let mut object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "data"},
            "data": {"content": content}});
        if self.replace {
            object["immutable"] = json!(true);
        }
        let mut dependent = Dependent::value(object).adopts(self.adopts);
        if self.keep {
            dependent = dependent.keep();
        }
        if self.create_only {
            dependent = dependent.create_only();
        }
        if self.replace {
            dependent = dependent.on_immutable(Immutable::Replace);
        }
        Desired::new().with_dependent(dependent)
    }
}

/// A program: the names of its operator and reconciler, and the sets that it applies.
#[derive(Clone)]
pub(crate) struct Program {
    pub(crate) operator: &'static str,
    pub(crate) former_operator: Option<&'static str>,
    pub(crate) reconciler: &'static str,
    pub(crate) former_reconciler: Option<&'static str>,
    /// The sets, in order; without a name that of the reconciler.
    pub(crate) sets: Arc<Mutex<Vec<Set>>>,
    /// The only owner that is reconciled.
    pub(crate) owner: &'static str,
    pub(crate) config_maps: Selection,
    pub(crate) widgets: Selection,
    pub(crate) guard: Option<Guard>,
    /// Whether each apply is preceded by its plan, and must be equal to it.
    pub(crate) plans: bool,
    pub(crate) only_plans: bool,
    pub(crate) elects: bool,
    /// The plans that differed from their applies.
    pub(crate) unlike: Arc<Mutex<Vec<String>>>,
    /// Applies wait until this is open.
    pub(crate) gate: Option<watch::Receiver<bool>>,
}

#[derive(Clone)]
pub(crate) struct Set {
    pub(crate) name: Option<&'static str>,
    pub(crate) former: Option<&'static str>,
    pub(crate) desired: Desired,
}

impl Program {
    /// Creates a program whose reconciler applies its set.
    pub(crate) fn new(desired: Desired) -> Self {
        Self {
            operator: "widgeteer",
            former_operator: None,
            reconciler: "things",
            former_reconciler: None,
            sets: Arc::default(),
            owner: "a",
            config_maps: Selection::all(),
            widgets: Selection::all(),
            guard: None,
            plans: true,
            only_plans: false,
            elects: false,
            unlike: Arc::default(),
            gate: None,
        }
        .set(None, None, desired)
    }

    /// Adds a set, which is applied after the others.
    pub(crate) fn set(
        self,
        name: Option<&'static str>,
        former: Option<&'static str>,
        desired: Desired,
    ) -> Self {
        self.sets.lock().push(Set {
            name,
            former,
            desired,
        });
        self
    }

    async fn reconcile(self, cx: Reconcile<Widget>) -> Result<(), Arc<ApplyError>> {
        if let Some(mut gate) = self.gate.clone() {
            gate.wait_for(|open| *open).await.expect("a gate");
        }
        let sets = self.sets.lock().clone();
        for each in sets {
            let set = || {
                let set = cx.apply_set(each.name.unwrap_or(self.reconciler));
                let former = each.former.iter().chain(&self.former_reconciler);
                former.fold(set, |set, name| set.renamed_from(name))
            };
            let plan = if self.plans {
                Some(set().plan(each.desired.clone()).await)
            } else {
                None
            };
            // The set of the reconciler has its former names without being asked for them.
            let applied = match each.name {
                Some(_) => set().apply(each.desired).await,
                None => cx.apply(each.desired).await,
            };
            if let Some(plan) = plan
                && planned(&plan) != done(&applied)
            {
                let applied = done(&applied);
                self.unlike.lock().push(format!("{plan}\n{applied:?}"));
            }
            applied?;
        }
        Ok(())
    }
}

/// Returns the actions of a plan.
fn planned(plan: &SetPlan) -> Vec<(String, PlannedAction)> {
    let steps = plan.steps().iter();
    let text = |key: &Option<lariat_core::ObjectKey>| format!("{key:?}");
    let mut all: Vec<_> = steps.map(|step| (text(&step.key), step.action)).collect();
    all.sort_by_key(|(key, _)| key.clone());
    all
}

/// Returns the actions of an apply, in the words of a plan.
fn done(result: &Result<Applied, ApplyError>) -> Vec<(String, PlannedAction)> {
    let (applied, failures) = match result {
        Ok(applied) => (applied, &[][..]),
        Err(error) => (error.applied(), error.failures()),
    };
    let action = |action| match action {
        Action::Created => PlannedAction::Create,
        Action::Changed => PlannedAction::Change,
        Action::Replaced => PlannedAction::Replace,
        Action::Pruned => PlannedAction::Prune,
        _ => PlannedAction::Unchanged,
    };
    let objects = applied.objects().iter();
    let mut all: Vec<_> = objects
        .map(|each| (format!("{:?}", Some(&each.key)), action(each.action)))
        .collect();
    all.extend(
        failures
            .iter()
            .map(|each| (format!("{:?}", each.key), PlannedAction::Fail)),
    );
    for waiting in applied.waiting() {
        if let Waiting::NextCall { key, .. } = waiting {
            all.push((format!("{:?}", Some(key)), PlannedAction::Prune));
        }
    }
    all.sort_by_key(|(key, _)| key.clone());
    all
}

/// The process of a release.
pub(crate) struct Process {
    pub(crate) operator: Operator,
    program: Program,
    /// The error of the last call, if it failed.
    last: Arc<Mutex<Option<String>>>,
}

impl Process {
    pub(crate) async fn stop(self) {
        self.operator.stop().await.expect("stopped");
        self.compare();
    }

    /// Checks that each apply did as its plan said.
    fn compare(&self) {
        let unlike = self.program.unlike.lock();
        assert!(unlike.is_empty(), "plans that differ: {unlike:#?}");
    }

    /// Ends the process at once, whatever it is doing.
    pub(crate) async fn kill(self) {
        self.compare();
        drop(self);
        time::sleep(SECOND).await;
    }

    pub(crate) fn error(&self) -> Option<String> {
        self.last.lock().clone()
    }

    pub(crate) async fn kick(&self) {
        let widgets = self.operator.factory().for_object::<Widget>();
        widgets.enqueue(&crate::bench::key(self.program.owner));
        time::sleep(30 * SECOND).await;
    }

    /// Changes what the program wants, and reconciles.
    pub(crate) async fn want(&self, sets: &Program) {
        let sets = sets.sets.lock().clone();
        *self.program.sets.lock() = sets;
        self.kick().await;
    }
}

/// What is compared of the object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct State {
    uid: String,
    content: String,
    labels: Vec<String>,
}

impl State {
    pub(crate) fn uid(&self) -> &str {
        &self.uid
    }

    pub(crate) fn content(&self) -> &str {
        &self.content
    }
}

/// A cluster in which the owner `a` exists.
pub(crate) struct World {
    pub(crate) bench: Bench,
    pub(crate) before: Mutex<Option<State>>,
    /// The error of the last call, for a cell that is wrong.
    pub(crate) error: Mutex<Option<String>>,
}

impl World {
    pub(crate) async fn new() -> Self {
        let bench = Bench::new().await;
        bench.create("a", 1).await;
        Self {
            bench,
            before: Mutex::default(),
            error: Mutex::default(),
        }
    }

    pub(crate) fn cluster(&self) -> &TestCluster {
        &self.bench.cluster
    }

    pub(crate) fn config_maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.cluster().client(), "default")
    }

    /// Starts a program, and waits until it has settled.
    pub(crate) async fn run(&self, program: &Program) -> Process {
        self.run_with(program, self.cluster().client()).await
    }

    /// Starts a program with a client of its own.
    pub(crate) async fn run_with(&self, program: &Program, client: Client) -> Process {
        let options = |selection: &Selection| {
            ControllerOptions::default().cache(KindOptions::default().selection(selection.clone()))
        };
        let (map, widget): (lariat_core::Gvk, lariat_core::Gvk) = (
            "v1/ConfigMap".parse().expect("a kind"),
            "demo.dev/v1/Widget".parse().expect("a kind"),
        );
        let builder = SharedControllerFactory::builder(client)
            .kind_options(map, options(&program.config_maps))
            .kind_options(widget, options(&program.widgets));
        let factory = if program.elects {
            let lease = Lease::new("widgeteer").namespace("default");
            builder.leader_election(lease.identity("one")).build()
        } else {
            builder.build()
        };
        let mut operator = Operator::new(program.operator, &factory);
        if let Some(former) = program.former_operator {
            operator = operator.renamed_from(former);
        }
        if program.only_plans {
            operator = operator.plan_only();
        }
        let mut reconciler = operator
            .reconciler(program.reconciler, &factory.for_object::<Widget>())
            .owns(&factory.for_object::<ConfigMap>());
        if let Some(former) = program.former_reconciler {
            reconciler = reconciler.renamed_from(former);
        }
        if let Some(guard) = program.guard.clone() {
            reconciler = reconciler.guard(guard);
        }
        let last: Arc<Mutex<Option<String>>> = Arc::default();
        let (log, of_call) = (Arc::clone(&last), program.clone());
        let registered = reconciler.register(move |cx: Reconcile<Widget>| {
            let (log, program) = (Arc::clone(&log), of_call.clone());
            async move {
                if cx.key().name() == program.owner {
                    let result = program.reconcile(cx).await;
                    *log.lock() = result.as_ref().err().map(ToString::to_string);
                    result?;
                }
                Ok(Outcome::done())
            }
        });
        registered.expect("registered");
        operator.start(2).await.expect("started");
        time::sleep(60 * SECOND).await;
        Process {
            operator,
            program: program.clone(),
            last,
        }
    }

    /// Runs the first release, stops it, and remembers the object.
    pub(crate) async fn release(&self, program: &Program) {
        self.run(program).await.stop().await;
        self.remember().await;
    }

    /// Remembers the object as it is.
    pub(crate) async fn remember(&self) {
        let state = self.state().await;
        assert!(state.is_some(), "the object is there");
        *self.before.lock() = state;
    }

    pub(crate) async fn state(&self) -> Option<State> {
        let object = self.config_maps().get_opt("data").await.expect("read")?;
        let labels = object.labels().iter();
        Some(State {
            uid: object.uid().expect("a uid"),
            content: object.data.as_ref().expect("data")["content"].clone(),
            labels: labels
                .map(|(name, value)| format!("{name}={value}"))
                .collect(),
        })
    }

    /// Deletes the owner and leaves or collects its objects.
    pub(crate) async fn delete_owner(&self, policy: PropagationPolicy) {
        let params = DeleteParams {
            propagation_policy: Some(policy),
            ..DeleteParams::default()
        };
        self.bench.api.delete("a", &params).await.expect("deleted");
        let api = &self.bench.api;
        while api.get_opt("a").await.expect("read").is_some() {
            time::sleep(SECOND).await;
        }
    }

    /// Returns the cell of the table, as far as the object shows it.
    pub(crate) async fn cell(&self, program: &Program, options: Options) -> String {
        let Some(now) = self.state().await else {
            return "gone".to_owned();
        };
        let before = self.before.lock().clone();
        let is_same = before.as_ref().is_some_and(|before| before.uid == now.uid);
        if before.as_ref() == Some(&now) && !self.has_marks(program, options).await {
            return "before".to_owned();
        }
        let marks = if self.has_marks(program, options).await {
            ""
        } else {
            " without marks"
        };
        let text = match (is_same, &*now.content) {
            (true, "2") => "new",
            (true, _) => "old",
            (false, "2") => "anew",
            (false, _) => "anew with the old content",
        };
        format!("{text}{marks}")
    }

    /// Returns whether the object has the marks that a program gives it: labels, and the reference to the owner.
    async fn has_marks(&self, program: &Program, options: Options) -> bool {
        let object = self.config_maps().get("data").await.expect("there");
        let owner = self.bench.get(program.owner).await;
        let uid = owner.as_ref().and_then(ResourceExt::uid);
        let label = |name: &str| object.labels().get(name).map(String::as_str);
        let sets = program.sets.lock();
        let set = sets.iter().find(|each| !each.desired.is_empty());
        let set = set.map(|set| set.name.unwrap_or(program.reconciler));
        let owners = object.owner_references().iter();
        let is_owned = owners.clone().any(|each| Some(&each.uid) == uid.as_ref());
        // The owner may be deleted by now; the labels are those of its last release all the same.
        let is_of_owner = uid.is_none() || label("lariat.dev/owner-uid") == uid.as_deref();
        is_of_owner
            && label("lariat.dev/operator") == Some(program.operator)
            && set.is_some_and(|set| label("lariat.dev/set") == Some(set))
            && (label("lariat.dev/keep") == Some("true")) == options.keep
            && label("lariat.dev/order").is_none()
            && is_owned != options.keep | uid.is_none()
    }

    /// Adds a sign to a cell if the last call has failed, and ends the process.
    pub(crate) async fn failed(&self, process: Process, cell: String) -> String {
        let error = process.error();
        process.kill().await;
        let sign = if error.is_some() { "!" } else { "" };
        *self.error.lock() = error;
        format!("{cell}{sign}")
    }

    /// Returns the cell of the table after the last call of a process, which must have nothing left to write.
    pub(crate) async fn end(
        &self,
        process: Process,
        program: &Program,
        options: Options,
    ) -> String {
        let cell = self.cell(program, options).await;
        if process.error().is_some() {
            return self.failed(process, cell).await;
        }
        let journal = self.cluster().journal();
        let mark = journal.mark();
        process.kick().await;
        let requests = journal.select().since(mark).requests();
        let writes = requests.iter().filter(|request| {
            // The dry run of a deletion says so in its body.
            let is_dry_delete = program.only_plans && request.verb == "delete";
            !is_dry_delete
                && !matches!(&*request.verb, "get" | "list" | "watch")
                && !request.query.contains("dryRun=All")
        });
        let writes: Vec<_> = writes
            .map(|each| format!("{} {}", each.verb, each.path))
            .collect();
        process.stop().await;
        if writes.is_empty() {
            cell
        } else {
            format!("{cell}, and then {writes:?}")
        }
    }
}
