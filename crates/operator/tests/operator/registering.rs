//! Tests of refused registrations.

use lariat_controller::{Outcome, SharedControllerFactory};
use lariat_operator::{Finalizer, Operator};

use crate::bench::{Bench, Widget};

#[tokio::test(start_paused = true)]
async fn two_reconcilers_of_a_kind_cannot_have_one_finalizer() {
    let bench = Bench::new().await;
    let register = |name: &str| {
        let reconciler = bench.operator.reconciler(name, &bench.widgets);
        reconciler
            .finalizer(Finalizer::new("demo.dev/cleanup"), |_| async {
                Ok(Outcome::done())
            })
            .register(|_| async { Ok(Outcome::done()) })
    };
    let quick = register("quick").unwrap();
    let error = register("slow").unwrap_err().to_string();
    assert_eq!(
        error,
        "reconciler \"slow\" of demo.dev/v1 Widget cannot have the finalizer \"demo.dev/cleanup\": another \
         reconciler has it; give each one of its own"
    );
    // For another kind it is another finalizer.
    let kind = bench
        .factory
        .for_object::<k8s_openapi::api::core::v1::Secret>();
    let reconciler = bench.operator.reconciler("secrets", &kind);
    reconciler
        .finalizer(Finalizer::new("demo.dev/cleanup"), |_| async {
            Ok(Outcome::done())
        })
        .register(|_| async { Ok(Outcome::done()) })
        .unwrap();
    quick.deregister().await;
    register("slow").unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_kind_of_another_factory_is_refused() {
    let bench = Bench::new().await;
    let other = SharedControllerFactory::builder(bench.cluster.client()).build();
    let operator = Operator::new("other", &other);
    let done = |_| async { Ok(Outcome::done()) };
    let registered = operator.reconciler("sizes", &bench.widgets).register(done);
    assert_eq!(
        registered.unwrap_err().to_string(),
        "operator \"other\" cannot have reconciler \"sizes\": its controller of demo.dev/v1 Widget belongs to another \
         factory; take the controller from `Operator::factory`"
    );
    let acting = lariat_cache::ClientIdentity::default().impersonate("jane");
    for own in [
        other.for_object::<Widget>(),
        other.for_object::<Widget>().with_identity(acting).unwrap(),
    ] {
        let registered = operator.reconciler("sizes", &own).register(done);
        registered.unwrap().deregister().await;
    }
}
