// Generates and compiles the C++ half of the bridge; it becomes part of the static library.
const BRIDGES: [&str; 2] = ["src/lib.rs", "src/views.rs"];

fn main() {
    cxx_build::bridges(BRIDGES).std("c++20").compile("pagoda_text_bridge");
    for bridge in BRIDGES {
        println!("cargo:rerun-if-changed={bridge}");
    }
}
