//! Middleware around handlers.

use std::sync::Arc;

use lariat_controller::{Call, ControllerOptions, HandlerOptions, HandlerResult, Next, Outcome};
use parking_lot::Mutex;

use crate::bench::{Bench, settle};

#[tokio::test(start_paused = true)]
async fn middleware_is_wrapped_from_the_factory_s_to_the_handler_s() {
    let order: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = |name: &'static str| {
        let order = Arc::clone(&order);
        move |call: Call, next: Next| {
            let order = Arc::clone(&order);
            async move {
                order.lock().push(format!("{name} {}", call.handler()));
                let result: HandlerResult = next.run(call).await;
                order.lock().push(format!("/{name}"));
                result
            }
        }
    };
    let handlers = |name| HandlerOptions::default().wrap(log(name));
    let options = |name| ControllerOptions::default().handlers(handlers(name));
    let bench = Bench::with(|builder| {
        builder.default_options(options("factory")).kind_options(
            lariat_core::Gvk::new("", "v1", "ConfigMap"),
            options("kind"),
        )
    })
    .await;
    let calls = bench.record_with("h", handlers("one").wrap(log("two")));
    bench.start().await;
    bench.create("a").await;
    settle().await;
    assert_eq!(
        order.lock().join(", "),
        "factory h, kind h, one h, two h, /two, /one, /kind, /factory"
    );
    assert_eq!(calls.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn middleware_may_answer_itself_and_its_panic_is_the_handler_s() {
    let bench = Bench::new().await;
    let denies = HandlerOptions::default().wrap(|_: Call, _: Next| async { Ok(Outcome::done()) });
    let denied = bench.record_with("denied", denies);
    let breaks = HandlerOptions::default()
        .max_retries(0)
        .wrap(|_: Call, _: Next| async { panic!("oh no") });
    let broken = bench.record_with("broken", breaks);
    let others = bench.record("others");
    bench.start().await;
    bench.create("a").await;
    settle().await;
    assert_eq!((denied.len(), broken.len(), others.len()), (0, 0, 1));
    let handlers = bench.status().handlers;
    assert_eq!((handlers[0].calls, handlers[1].panics), (1, 1));
}
