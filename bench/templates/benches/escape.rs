//! Compares escapers on texts with zero, few and many special characters, short and long, each
//! appended to a buffer with enough capacity.

use std::hint::black_box;

use bine_bench_templates::{bine, sailfish};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

/// `length` bytes of prose in which every `distance`th byte is special; at 0, no byte is.
fn text(length: usize, distance: usize) -> String {
    let prose = b"Hops are climbing plants, and a bine is the stem on which they climb. ";
    let specials = b"<>&\"'";
    let byte = |at: usize| match distance {
        0 => prose[at % prose.len()],
        _ if at % distance == distance - 1 => specials[at / distance % specials.len()],
        _ => prose[at % prose.len()],
    };
    (0..length).map(|at| char::from(byte(at))).collect()
}

fn escapers(criterion: &mut Criterion) {
    for length in [12, 40, 200, 16 * 1024] {
        for (name, distance) in [("clean", 0), ("sparse", 50), ("dense", 3)] {
            let text = text(length, distance);
            let mut group = criterion.benchmark_group(format!("escape/{length} {name}"));
            group.throughput(Throughput::Bytes(length as u64));
            let mut out = Vec::with_capacity(8 * length);
            group.bench_function("bine", |bencher| {
                bencher.iter(|| {
                    out.clear();
                    bine::text(black_box(&text), &mut out);
                    black_box(out.as_mut_ptr());
                });
            });
            group.bench_function("v_htmlescape", |bencher| {
                bencher.iter(|| {
                    out.clear();
                    v_htmlescape::escape_bytes(black_box(&text), &mut out);
                    black_box(out.as_mut_ptr());
                });
            });
            let mut out = ::sailfish::runtime::Buffer::with_capacity(8 * length);
            group.bench_function("sailfish", |bencher| {
                bencher.iter(|| {
                    out.clear();
                    sailfish::text(black_box(&text), &mut out);
                    black_box(out.as_mut_ptr());
                });
            });
            group.finish();
        }
    }
}

criterion_group!(benches, escapers);
criterion_main!(benches);
