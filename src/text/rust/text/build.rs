// Generates and compiles the C++ half of the bridge; it becomes part of the static library.
fn main() {
    cxx_build::bridge("src/lib.rs").std("c++20").compile("pagoda_text_bridge");
    println!("cargo:rerun-if-changed=src/lib.rs");
}
