//! A collector that is spoken to in the wrong way.

use stack::Exit;

use crate::support::{PATIENCE, World};

/// Settings that cannot be honoured are refused at start, by name.
#[tokio::test]
async fn settings_that_cannot_be_honoured_are_refused() {
    let world = World::new().await;
    for (name, value) in [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
        ("OTEL_TRACES_SAMPLER", "jaeger_remote"),
        ("OTEL_TRACES_SAMPLER_ARG", "often"),
    ] {
        let mut env = vec![("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318"), (name, value)];
        if name == "OTEL_TRACES_SAMPLER_ARG" {
            env.push(("OTEL_TRACES_SAMPLER", "traceidratio"));
        }
        let (child, _) = world.process(&format!("refused-{name}"), &env).await;
        assert_eq!(child.wait_exit(PATIENCE).await, Some(Exit::Code(2)), "{name}: {}", child.log_tail(20));
        let log = child.log_tail(20);
        assert!(log.contains(name) && log.contains(value), "{name}: {log}");
    }
}
