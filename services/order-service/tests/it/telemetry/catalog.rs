//! What a span carries stands in `observability/catalog.yaml`: its name, attributes and events.

use super::receiver::{CLIENT, SERVER, Seen, Span};

const CATALOG: &str = include_str!("../../../../../observability/catalog.yaml");

/// What the bridge from `tracing` adds to spans and events: where in the code, on which thread, how long.
const OF_THE_BRIDGE: [&str; 6] = ["code.", "thread.", "target", "level", "busy_ns", "idle_ns"];

/// Panics at the first name that the catalog does not have.
pub(super) fn agrees(spans: &Seen) {
    for span in spans.all() {
        let entry = entry(span);
        let (attributes, events) = (list(entry, "attributes"), list(entry, "events"));
        for name in span.names().filter(|name| !of_the_bridge(name)) {
            assert!(attributes.contains(&name), "attribute {name} of {} is not in the catalog", span.name);
        }
        // The service's own are log lines.
        for event in span.events.iter().filter(|event| event.attribute("target").starts_with("zk_locks")) {
            let told = events.iter().any(|known| match known.split_once('{') {
                Some((begin, _)) => event.name.starts_with(begin),
                None => event.name == *known,
            });
            assert!(told, "event {:?} of {} is not in the catalog", event.name, span.name);
            for name in event.names().filter(|name| !of_the_bridge(name)) {
                let known = entries("attributes").any(|entry| name_of(entry) == name);
                assert!(known, "attribute {name} of event {:?} is not in the catalog", event.name);
            }
        }
    }
}

fn of_the_bridge(name: &str) -> bool {
    OF_THE_BRIDGE.iter().any(|begin| name.starts_with(begin))
}

/// The catalog's entry for spans like this one.
fn entry(span: &Span) -> &'static str {
    let name = match span.kind {
        SERVER => "{method} {route}",
        CLIENT => "{operation} {collection}",
        _ => &span.name,
    };
    let found = entries("spans").find(|entry| name_of(entry) == name);
    found.unwrap_or_else(|| panic!("span {name} is not in the catalog"))
}

fn entries(section: &str) -> impl Iterator<Item = &'static str> {
    let section = CATALOG.split(&format!("\n{section}:\n")).nth(1).expect("a section");
    let section = section.split("\n\n").next().expect("it ends");
    section.split("  - name: ").skip(1)
}

fn name_of(entry: &str) -> &str {
    entry.lines().next().expect("a name").trim_matches('"')
}

/// A list in brackets, perhaps of several lines.
fn list(entry: &'static str, key: &str) -> Vec<&'static str> {
    let Some((_, list)) = entry.split_once(&format!("    {key}: [")) else { return Vec::new() };
    let list = list.split(']').next().expect("it ends");
    list.split(',').map(|item| item.trim().trim_matches('"')).collect()
}
