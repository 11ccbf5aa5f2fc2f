// The machine's own dot-product instructions, run flat out: x86's AVX-512 BF16 and VNNI, and AMX's
// tiles. Elsewhere there are none to measure yet, and the functions say so.
#pragma once

#include <cstddef>

namespace pagoda {

bool has_bf16_dot_products();
bool has_integer_dot_products();  // of 16 and of 8 bits
bool has_tile_products();         // of bf16 and of 8 bits

// Runs twelve chains of `rounds` instructions; returns the products made.
double bf16_dot_products(std::size_t rounds);
double int16_dot_products(std::size_t rounds);
double int8_dot_products(std::size_t rounds);

// Does the same with four tiles of sums: 16 x 16 of them over 32 k of bf16, over 64 of 8 bits.
double bf16_tile_products(std::size_t rounds);
double int8_tile_products(std::size_t rounds);

}  // namespace pagoda
