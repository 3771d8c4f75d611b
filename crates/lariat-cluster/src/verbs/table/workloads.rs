//! Rows of what runs Pods.

use serde_json::Value;

use super::age;
use super::column::{AGE, NAME, Printer, flag, number, text, wide};
use super::row::{Cells, NONE, Row};

const TEMPLATE: &str = "/spec/template/spec/containers";

pub(super) const REPLICATION_CONTROLLERS: Printer = Printer {
    columns: REPLICAS,
    cells: |set| replicas(set, set.labels("/spec/selector")),
};

pub(super) const REPLICA_SETS: Printer = Printer {
    columns: REPLICAS,
    cells: |set| replicas(set, set.selector_or_none("/spec/selector")),
};

const REPLICAS: &[super::column::Column] = &[
    NAME,
    number("Desired"),
    number("Current"),
    number("Ready"),
    AGE,
    wide("Containers"),
    wide("Images"),
    wide("Selector"),
];

fn replicas(set: Row<'_>, selector: String) -> Cells {
    let [names, images] = set.containers(TEMPLATE);
    vec![
        set.name().into(),
        set.number("/spec/replicas").into(),
        set.number("/status/replicas").into(),
        set.number("/status/readyReplicas").into(),
        set.age().into(),
        names,
        images,
        selector.into(),
    ]
}

pub(super) const DEPLOYMENTS: Printer = Printer {
    columns: &[
        NAME,
        text("Ready"),
        text("Up-to-date"),
        text("Available"),
        AGE,
        wide("Containers"),
        wide("Images"),
        wide("Selector"),
    ],
    cells: |deployment| {
        let [names, images] = deployment.containers(TEMPLATE);
        vec![
            deployment.name().into(),
            ready(deployment),
            deployment.number("/status/updatedReplicas").into(),
            deployment.number("/status/availableReplicas").into(),
            deployment.age().into(),
            names,
            images,
            deployment.selector("/spec/selector").into(),
        ]
    },
};

pub(super) const STATEFUL_SETS: Printer = Printer {
    columns: &[NAME, text("Ready"), AGE, wide("Containers"), wide("Images")],
    cells: |set| {
        let [names, images] = set.containers(TEMPLATE);
        vec![
            set.name().into(),
            ready(set),
            set.age().into(),
            names,
            images,
        ]
    },
};

fn ready(set: Row<'_>) -> Value {
    let (ready, desired) = (
        set.number("/status/readyReplicas"),
        set.number("/spec/replicas"),
    );
    format!("{ready}/{desired}").into()
}

pub(super) const DAEMON_SETS: Printer = Printer {
    columns: &[
        NAME,
        number("Desired"),
        number("Current"),
        number("Ready"),
        number("Up-to-date"),
        number("Available"),
        text("Node Selector"),
        AGE,
        wide("Containers"),
        wide("Images"),
        wide("Selector"),
    ],
    cells: |set| {
        let [names, images] = set.containers(TEMPLATE);
        vec![
            set.name().into(),
            set.number("/status/desiredNumberScheduled").into(),
            set.number("/status/currentNumberScheduled").into(),
            set.number("/status/numberReady").into(),
            set.number("/status/updatedNumberScheduled").into(),
            set.number("/status/numberAvailable").into(),
            set.labels("/spec/template/spec/nodeSelector").into(),
            set.age().into(),
            names,
            images,
            set.selector_or_none("/spec/selector").into(),
        ]
    },
};

pub(super) const JOBS: Printer = Printer {
    columns: &[
        NAME,
        text("Status"),
        text("Completions"),
        text("Duration"),
        AGE,
        wide("Containers"),
        wide("Images"),
        wide("Selector"),
    ],
    cells: |job| {
        let [names, images] = job.containers(TEMPLATE);
        vec![
            job.name().into(),
            job_status(job).into(),
            completions(job).into(),
            duration(job).into(),
            job.age().into(),
            names,
            images,
            job.selector_or_none("/spec/selector").into(),
        ]
    },
};

fn completions(job: Row<'_>) -> String {
    let succeeded = job.number("/status/succeeded");
    match (
        job.get("/spec/completions").as_i64(),
        job.number("/spec/parallelism"),
    ) {
        (Some(wanted), _) => format!("{succeeded}/{wanted}"),
        (None, parallelism @ 2..) => format!("{succeeded}/1 of {parallelism}"),
        (None, _) => format!("{succeeded}/1"),
    }
}

fn duration(job: Row<'_>) -> String {
    let (start, end) = (
        job.text("/status/startTime"),
        job.text("/status/completionTime"),
    );
    match (start, end) {
        ("", _) => String::new(),
        (_, "") => job.since("/status/startTime"),
        (start, end) => age::between(start, end).unwrap_or_default(),
    }
}

fn job_status(job: Row<'_>) -> &'static str {
    let has = |kind: &str| job.condition("/status/conditions", kind) == "True";
    if has("Complete") {
        "Complete"
    } else if has("Failed") {
        "Failed"
    } else if job.is_deleting() {
        "Terminating"
    } else if has("Suspended") {
        "Suspended"
    } else if has("FailureTarget") {
        "FailureTarget"
    } else if has("SuccessCriteriaMet") {
        "SuccessCriteriaMet"
    } else {
        "Running"
    }
}

pub(super) const CRON_JOBS: Printer = Printer {
    columns: &[
        NAME,
        text("Schedule"),
        text("Timezone"),
        flag("Suspend"),
        number("Active"),
        text("Last Schedule"),
        AGE,
        wide("Containers"),
        wide("Images"),
        wide("Selector"),
    ],
    cells: |cron| {
        let [names, images] = cron.containers("/spec/jobTemplate/spec/template/spec/containers");
        let last = match cron.text("/status/lastScheduleTime") {
            "" => NONE.to_owned(),
            _ => cron.since("/status/lastScheduleTime"),
        };
        let suspend = match cron.get("/spec/suspend").as_bool() {
            Some(true) => "True",
            Some(false) => "False",
            None => "<unset>",
        };
        vec![
            cron.name().into(),
            cron.text("/spec/schedule").into(),
            cron.text_or("/spec/timeZone", NONE).into(),
            suspend.into(),
            cron.count("/status/active").into(),
            last.into(),
            cron.age().into(),
            names,
            images,
            cron.selector_or_none("/spec/jobTemplate/spec/selector")
                .into(),
        ]
    },
};

pub(super) const CONTROLLER_REVISIONS: Printer = Printer {
    columns: &[NAME, text("Controller"), text("Revision"), AGE],
    cells: |revision| {
        let controller = revision
            .rows("/metadata/ownerReferences")
            .find(|owner| owner.flag("/controller"));
        let controller = controller.map_or(NONE.to_owned(), |owner| {
            let (group, _) = owner
                .text("/apiVersion")
                .split_once('/')
                .unwrap_or_default();
            let kind =
                lariat_apimachinery::kinds::qualified(owner.text("/kind"), group).to_lowercase();
            format!("{kind}/{}", owner.text("/name"))
        });
        vec![
            revision.name().into(),
            controller.into(),
            revision.number("/revision").into(),
            revision.age().into(),
        ]
    },
};

pub(super) const DISRUPTION_BUDGETS: Printer = Printer {
    columns: &[
        NAME,
        text("Min Available"),
        text("Max Unavailable"),
        number("Allowed Disruptions"),
        AGE,
    ],
    cells: |budget| {
        vec![
            budget.name().into(),
            budget.scalar_or("/spec/minAvailable", "N/A").into(),
            budget.scalar_or("/spec/maxUnavailable", "N/A").into(),
            budget.number("/status/disruptionsAllowed").into(),
            budget.age().into(),
        ]
    },
};
