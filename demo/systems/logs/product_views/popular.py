"""The emission `popular-products`: one alert for each product that reaches 1,000 views, with its name."""

from foldlake import Emission

# The view that reaches the threshold completes an alert, or, if there was no name then, the first name. Each product satisfies one of the two
# once: views and changes grow by one.
REACHES = "event_type = 'ProductView' AND state.views = 1000 AND state.changes >= 1"
IS_NAMED = "event_type = 'Product' AND state.changes = 1 AND state.views >= 1000"

DECLARATIONS = [
    Emission(
        name="popular-products",
        read_model="product-views",
        output_topic="popular-products",
        output_type="PopularProduct",
        where=f"{REACHES} OR {IS_NAMED}",
        fields={
            "occurredOn": "occurredOn",
            "productId": "productId",
            "name": "state.name",
            "views": "state.views",
        },
    ),
]
