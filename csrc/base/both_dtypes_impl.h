/* Compiles one template for float, then for double.
 * Needs: MF_TEMPLATE, the path of the template in quotes. Ends with MF_TEMPLATE undefined. */
#define MF_F32 1
#include "base/dtype_impl.h"
#include MF_TEMPLATE
#undef MF_F32
#define MF_F32 0
#include "base/dtype_impl.h"
#include MF_TEMPLATE
#undef MF_F32
#undef MF_TEMPLATE
