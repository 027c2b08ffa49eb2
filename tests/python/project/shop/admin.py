from django.contrib import admin
from shop.models import Reader, Required, Visit


class Visits(admin.TabularInline):
    model = Visit
    extra = 1
    fields = ["note", "seen"]
    readonly_fields = ["seen"]


@admin.register(Reader)
class ReaderAdmin(admin.ModelAdmin):
    list_display = ["url", "seen", "days"]
    list_filter = [("seen", admin.EmptyFieldListFilter)]
    search_fields = ["url", "seen__may_contain"]
    inlines = [Visits]


@admin.register(Required)
class RequiredAdmin(admin.ModelAdmin):
    fields = ["name", ("seen", "days")]
    readonly_fields = ["seen", "days"]


@admin.register(Visit)
class VisitAdmin(admin.ModelAdmin):
    search_fields = ["reader__seen__may_contain"]
