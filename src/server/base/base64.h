// Base64, with padding: RFC 4648's standard alphabet.
#pragma once

#include <string>
#include <string_view>

namespace pagoda {

// Returns the bytes as text: 4 characters for each 3, the last ones padded. REQUIRES: < 1.5 GB.
std::string base64(std::string_view bytes);

}  // namespace pagoda
