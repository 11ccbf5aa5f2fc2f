// Runs the machine's dot-product instructions at full speed: x86's AVX-512 BF16 and VNNI, and AMX's
// tiles. On a machine without them, has_...() returns false.
#pragma once

#include <cstddef>

namespace pagoda {

bool has_bf16_dot_products();
bool has_integer_dot_products();  // of 16-bit and of 8-bit integers
bool has_tile_products();         // of bf16 and of 8-bit integers

// Runs twelve independent chains of `rounds` instructions each; returns the number of products.
double bf16_dot_products(std::size_t rounds);
double int16_dot_products(std::size_t rounds);
double int8_dot_products(std::size_t rounds);

// Does the same with four tiles of 16 x 16 sums. An instruction adds 32 products of bf16, or 64 of
// 8 bits, to each sum.
double bf16_tile_products(std::size_t rounds);
double int8_tile_products(std::size_t rounds);

}  // namespace pagoda
