/* Everything that generated code may call, in the order of use. `scalar.prelude` writes it out as one text. */
#include "prelude_types.h"
#include "prelude_integer.h"
#include "prelude_float.h"
#include "prelude_storage.h"
#include "prelude_convert.h"
#include "prelude_lanes.h"
#include "prelude_complex.h"
#include "prelude_math.h"
